-- Sales of a month, by catalog and web, of what sells often to those who buy most.
WITH often AS (SELECT substr(i_item_desc, 1, 30) AS words, i_item_sk AS item_sk, d_date AS sold, count(*) AS times FROM store_sales, date_dim, item
  WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND d_year BETWEEN [YEAR] - 1 AND [YEAR] + 2
  GROUP BY substr(i_item_desc, 1, 30), i_item_sk, d_date HAVING count(*) > 1),
most AS (SELECT max(spent) AS spent FROM (SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS spent FROM store_sales, customer, date_dim
  WHERE ss_customer_sk = c_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year BETWEEN [YEAR] - 1 AND [YEAR] + 2 GROUP BY c_customer_sk) x),
best AS (SELECT c_customer_sk AS customer_sk, sum(ss_quantity * ss_sales_price) AS spent FROM store_sales, customer WHERE ss_customer_sk = c_customer_sk
  GROUP BY c_customer_sk HAVING sum(ss_quantity * ss_sales_price) > 0.3 * (SELECT spent FROM most))
SELECT c_last_name, c_first_name, sum(sales) AS sales FROM (
  SELECT c_last_name, c_first_name, cs_quantity * cs_list_price AS sales FROM catalog_sales, date_dim, customer
  WHERE d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 2 AND cs_sold_date_sk = d_date_sk AND cs_item_sk IN (SELECT item_sk FROM often)
    AND cs_bill_customer_sk IN (SELECT customer_sk FROM best) AND cs_bill_customer_sk = c_customer_sk
  UNION ALL
  SELECT c_last_name, c_first_name, ws_quantity * ws_list_price FROM web_sales, date_dim, customer
  WHERE d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 2 AND ws_sold_date_sk = d_date_sk AND ws_item_sk IN (SELECT item_sk FROM often)
    AND ws_bill_customer_sk IN (SELECT customer_sk FROM best) AND ws_bill_customer_sk = c_customer_sk) y
GROUP BY c_last_name, c_first_name ORDER BY c_last_name, c_first_name, sales LIMIT 100
