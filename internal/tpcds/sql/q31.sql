-- Counties where the web grows more than the stores, quarter by quarter.
WITH shop AS (SELECT ca_county AS county, d_qoy AS quarter, d_year AS year, sum(ss_ext_sales_price) AS sales FROM store_sales, date_dim, customer_address
  WHERE ss_sold_date_sk = d_date_sk AND ss_addr_sk = ca_address_sk GROUP BY ca_county, d_qoy, d_year),
web AS (SELECT ca_county AS county, d_qoy AS quarter, d_year AS year, sum(ws_ext_sales_price) AS sales FROM web_sales, date_dim, customer_address
  WHERE ws_sold_date_sk = d_date_sk AND ws_bill_addr_sk = ca_address_sk GROUP BY ca_county, d_qoy, d_year)
SELECT s1.county, s1.year, w2.sales / w1.sales AS web1, s2.sales / s1.sales AS shop1, w3.sales / w2.sales AS web2, s3.sales / s2.sales AS shop2
FROM shop s1, shop s2, shop s3, web w1, web w2, web w3
WHERE s1.quarter = 1 AND s1.year = [YEAR] AND s1.county = s2.county AND s2.quarter = 2 AND s2.year = [YEAR] AND s2.county = s3.county AND s3.quarter = 3 AND s3.year = [YEAR]
  AND s1.county = w1.county AND w1.quarter = 1 AND w1.year = [YEAR] AND w1.county = w2.county AND w2.quarter = 2 AND w2.year = [YEAR]
  AND w1.county = w3.county AND w3.quarter = 3 AND w3.year = [YEAR] AND w1.sales > 0 AND w2.sales > 0 AND s1.sales > 0 AND s2.sales > 0
  AND CASE WHEN w1.sales > 0 THEN w2.sales / w1.sales END > CASE WHEN s1.sales > 0 THEN s2.sales / s1.sales END
ORDER BY s1.county, s1.year
