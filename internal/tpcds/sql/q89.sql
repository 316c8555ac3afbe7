-- Months of brands in stores that are off the year's mean.
SELECT * FROM (SELECT i_category, i_class, i_brand, s_store_name, s_company_name, d_moy, sum(ss_sales_price) AS sales,
    avg(sum(ss_sales_price)) OVER (PARTITION BY i_category, i_brand, s_store_name, s_company_name) AS mean
  FROM item, store_sales, date_dim, store
  WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_year IN ([YEAR])
    AND ((i_category IN ('[CATEGORY1]', '[CATEGORY2]', '[CATEGORY3]') AND i_size IN ('[SIZE1]', '[SIZE2]', '[SIZE3]')) OR (i_category IN ('[CATEGORY4]', '[CATEGORY5]', '[CATEGORY6]') AND i_size IN ('[SIZE4]', '[SIZE5]', '[SIZE6]')))
  GROUP BY i_category, i_class, i_brand, s_store_name, s_company_name, d_moy) x
WHERE CASE WHEN mean <> 0 THEN abs(sales - mean) / mean END > 0.1 ORDER BY sales - mean, s_store_name, i_category, i_class, i_brand, d_moy LIMIT 100
