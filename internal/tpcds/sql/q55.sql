-- Brands of a few managers in a month, without the year.
SELECT i_brand_id AS brand_id, i_brand AS brand, sum(ss_ext_sales_price) AS price, count(ss_ext_sales_price) AS sales FROM date_dim, store_sales, item
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id BETWEEN [MANAGER] AND [MANAGER] + 3 AND d_moy = [LATE] AND d_year = [YEAR]
GROUP BY i_brand, i_brand_id ORDER BY price DESC, brand_id LIMIT 100
