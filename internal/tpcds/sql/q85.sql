-- Means of web returns by reason, of three kinds of couples at three groups of places.
SELECT substr(r_reason_desc, 1, 20) AS reason, avg(ws_quantity) AS quantity, avg(wr_refunded_cash) AS cash, avg(wr_fee) AS fee
FROM web_sales, web_returns, web_page, customer_demographics cd1, customer_demographics cd2, customer_address, date_dim, reason
WHERE ws_web_page_sk = wp_web_page_sk AND ws_item_sk = wr_item_sk AND ws_order_number = wr_order_number AND ws_sold_date_sk = d_date_sk AND d_year = [YEAR]
  AND cd1.cd_demo_sk = wr_refunded_cdemo_sk AND cd2.cd_demo_sk = wr_returning_cdemo_sk AND ca_address_sk = wr_refunded_addr_sk AND r_reason_sk = wr_reason_sk
  AND ((cd1.cd_marital_status IN ('[MARITAL1]', '[MARITAL2]') AND cd1.cd_marital_status = cd2.cd_marital_status AND cd1.cd_education_status = cd2.cd_education_status AND ws_sales_price BETWEEN 50.00 AND 250.00)
    OR (cd1.cd_marital_status = '[MARITAL3]' AND cd1.cd_marital_status = cd2.cd_marital_status AND cd1.cd_education_status = cd2.cd_education_status AND ws_sales_price BETWEEN 20.00 AND 150.00)
    OR (cd1.cd_marital_status = '[MARITAL4]' AND cd1.cd_marital_status = cd2.cd_marital_status AND cd1.cd_education_status = cd2.cd_education_status AND ws_sales_price BETWEEN 0.00 AND 100.00))
  AND ((ca_country = 'United States' AND ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]', '[STATE4]') AND ws_net_profit BETWEEN 0 AND 9000)
    OR (ca_country = 'United States' AND ca_state IN ('[STATE5]', '[STATE6]', '[STATE7]', '[STATE8]') AND ws_net_profit BETWEEN -5000 AND 3000)
    OR (ca_country = 'United States' AND ca_state IN ('[STATE9]', '[STATE10]', '[STATE11]', '[STATE12]') AND ws_net_profit < 1000))
GROUP BY r_reason_desc ORDER BY reason, quantity, cash, fee LIMIT 100
