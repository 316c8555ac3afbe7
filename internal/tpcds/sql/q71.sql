-- Brands sold at breakfast and dinner, by minute.
SELECT i_brand_id AS brand_id, i_brand AS brand, t_hour, t_minute, sum(price) AS price
FROM item, (SELECT ws_ext_sales_price AS price, ws_sold_date_sk AS day, ws_item_sk AS sold, ws_sold_time_sk AS second FROM web_sales, date_dim WHERE d_date_sk = ws_sold_date_sk AND d_moy = [LATE] AND d_year = [YEAR]
  UNION ALL SELECT cs_ext_sales_price, cs_sold_date_sk, cs_item_sk, cs_sold_time_sk FROM catalog_sales, date_dim WHERE d_date_sk = cs_sold_date_sk AND d_moy = [LATE] AND d_year = [YEAR]
  UNION ALL SELECT ss_ext_sales_price, ss_sold_date_sk, ss_item_sk, ss_sold_time_sk FROM store_sales, date_dim WHERE d_date_sk = ss_sold_date_sk AND d_moy = [LATE] AND d_year = [YEAR]) x, time_dim
WHERE sold = i_item_sk AND i_manager_id BETWEEN [MANAGER] AND [MANAGER] + 10 AND second = t_time_sk AND (t_meal_time = 'breakfast' OR t_meal_time = 'dinner')
GROUP BY i_brand, i_brand_id, t_hour, t_minute ORDER BY price DESC, i_brand_id, t_hour, t_minute
