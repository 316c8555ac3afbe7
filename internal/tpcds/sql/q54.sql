-- Revenue classes of people who bought of a category by catalog or web, over the months after.
WITH buyers AS (SELECT DISTINCT c_customer_sk, c_current_addr_sk FROM (
    SELECT cs_sold_date_sk AS day, cs_bill_customer_sk AS customer, cs_item_sk AS item FROM catalog_sales
    UNION ALL SELECT ws_sold_date_sk, ws_bill_customer_sk, ws_item_sk FROM web_sales) x, item, date_dim, customer
  WHERE day = d_date_sk AND item = i_item_sk AND i_category = '[CATEGORY]' AND c_customer_sk = customer AND d_moy = [EARLY] AND d_year = [YEAR]),
revenue AS (SELECT c_customer_sk, sum(ss_ext_sales_price) AS amount FROM buyers, store_sales, customer_address, store, date_dim
  WHERE c_current_addr_sk = ca_address_sk AND ca_state = s_state AND ss_sold_date_sk = d_date_sk AND c_customer_sk = ss_customer_sk
    AND d_month_seq BETWEEN (SELECT DISTINCT d_month_seq + 1 FROM date_dim WHERE d_year = [YEAR] AND d_moy = [EARLY])
      AND (SELECT DISTINCT d_month_seq + 3 FROM date_dim WHERE d_year = [YEAR] AND d_moy = [EARLY])
  GROUP BY c_customer_sk),
classes AS (SELECT cast(amount / 50 AS integer) AS class FROM revenue)
SELECT class, count(*) AS customers, class * 50 AS base FROM classes GROUP BY class ORDER BY class, customers LIMIT 100
