-- Brands of a few makers in one month of every year.
SELECT d_year, i_brand_id AS brand_id, i_brand AS brand, sum(ss_ext_discount_amt) AS discounts
FROM date_dim, store_sales, item
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manufact_id BETWEEN [MAKER] AND [MAKER] + 20 AND d_moy = [LATE]
GROUP BY d_year, i_brand, i_brand_id ORDER BY d_year, discounts DESC, brand_id LIMIT 100
