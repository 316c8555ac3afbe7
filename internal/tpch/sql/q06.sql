SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
WHERE l_shipdate >= date '[DATE]' AND l_shipdate < date '[DATE]' + interval '1' year AND l_discount BETWEEN [DISCOUNT] - 0.01 AND [DISCOUNT] + 0.01 AND l_quantity < [QUANTITY]
