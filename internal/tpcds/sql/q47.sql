-- Brands in stores, by month: far off the year's mean, beside the month before and after.
WITH monthly AS (SELECT i_category, i_brand, s_store_name, s_company_name, d_year, d_moy, sum(ss_sales_price) AS sales,
    avg(sum(ss_sales_price)) OVER (PARTITION BY i_category, i_brand, s_store_name, s_company_name, d_year) AS mean,
    rank() OVER (PARTITION BY i_category, i_brand, s_store_name, s_company_name ORDER BY d_year, d_moy) AS place
  FROM item, store_sales, date_dim, store
  WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND (d_year = [YEAR] OR (d_year = [YEAR] - 1 AND d_moy = 12) OR (d_year = [YEAR] + 1 AND d_moy = 1))
  GROUP BY i_category, i_brand, s_store_name, s_company_name, d_year, d_moy),
beside AS (SELECT v.i_category, v.i_brand, v.s_store_name, v.s_company_name, v.d_year, v.d_moy, v.mean, v.sales, b.sales AS before, a.sales AS after FROM monthly v, monthly b, monthly a
  WHERE v.i_category = b.i_category AND v.i_category = a.i_category AND v.i_brand = b.i_brand AND v.i_brand = a.i_brand AND v.s_store_name = b.s_store_name AND v.s_store_name = a.s_store_name
    AND v.s_company_name = b.s_company_name AND v.s_company_name = a.s_company_name AND v.place = b.place + 1 AND v.place = a.place - 1)
SELECT * FROM beside WHERE d_year = [YEAR] AND mean > 0 AND CASE WHEN mean > 0 THEN abs(sales - mean) / mean END > 0.1
ORDER BY sales - mean, s_store_name, i_category, i_brand, d_moy LIMIT 100
