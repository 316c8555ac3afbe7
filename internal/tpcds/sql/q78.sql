-- What customers kept of an item in a year from stores, beside what they kept from the other channels.
WITH ws AS (SELECT d_year AS year, ws_item_sk AS item, ws_bill_customer_sk AS customer, sum(ws_quantity) AS quantity, sum(ws_wholesale_cost) AS cost, sum(ws_sales_price) AS price
  FROM web_sales LEFT JOIN web_returns ON wr_order_number = ws_order_number AND ws_item_sk = wr_item_sk JOIN date_dim ON ws_sold_date_sk = d_date_sk
  WHERE wr_order_number IS NULL GROUP BY d_year, ws_item_sk, ws_bill_customer_sk),
cs AS (SELECT d_year AS year, cs_item_sk AS item, cs_bill_customer_sk AS customer, sum(cs_quantity) AS quantity, sum(cs_wholesale_cost) AS cost, sum(cs_sales_price) AS price
  FROM catalog_sales LEFT JOIN catalog_returns ON cr_order_number = cs_order_number AND cs_item_sk = cr_item_sk JOIN date_dim ON cs_sold_date_sk = d_date_sk
  WHERE cr_order_number IS NULL GROUP BY d_year, cs_item_sk, cs_bill_customer_sk),
ss AS (SELECT d_year AS year, ss_item_sk AS item, ss_customer_sk AS customer, sum(ss_quantity) AS quantity, sum(ss_wholesale_cost) AS cost, sum(ss_sales_price) AS price
  FROM store_sales LEFT JOIN store_returns ON sr_ticket_number = ss_ticket_number AND ss_item_sk = sr_item_sk JOIN date_dim ON ss_sold_date_sk = d_date_sk
  WHERE sr_ticket_number IS NULL GROUP BY d_year, ss_item_sk, ss_customer_sk)
SELECT ss.item, round(cast(ss.quantity AS decimal) / nullif(coalesce(ws.quantity, 0) + coalesce(cs.quantity, 0), 0), 2) AS ratio, ss.quantity, ss.cost, ss.price,
  coalesce(ws.quantity, 0) + coalesce(cs.quantity, 0) AS other_quantity, coalesce(ws.cost, 0) + coalesce(cs.cost, 0) AS other_cost, coalesce(ws.price, 0) + coalesce(cs.price, 0) AS other_price
FROM ss LEFT JOIN ws ON ws.year = ss.year AND ws.item = ss.item AND ws.customer = ss.customer LEFT JOIN cs ON cs.year = ss.year AND cs.item = ss.item AND cs.customer = ss.customer
WHERE (coalesce(ws.quantity, 0) > 0 OR coalesce(cs.quantity, 0) > 0) AND ss.year = [YEAR]
ORDER BY ss.item, ss.quantity DESC, ss.cost DESC, ss.price DESC, other_quantity, other_cost, other_price, ratio LIMIT 100
