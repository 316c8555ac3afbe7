-- States with many buyers of items that are dear for their category.
SELECT ca_state AS state, count(*) AS buyers FROM customer_address, customer, store_sales, date_dim, item
WHERE ca_address_sk = c_current_addr_sk AND c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk
  AND d_month_seq = (SELECT DISTINCT d_month_seq FROM date_dim WHERE d_year = [YEAR] AND d_moy = [EARLY])
  AND i_current_price > 1.2 * (SELECT avg(same.i_current_price) FROM item same WHERE same.i_category = item.i_category)
GROUP BY ca_state HAVING count(*) >= 3 ORDER BY buyers, state LIMIT 100
