-- Days on which an item's running sales on the web are above those in stores.
WITH web AS (SELECT ws_item_sk AS item, d_date AS day, sum(sum(ws_sales_price)) OVER (PARTITION BY ws_item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running
  FROM web_sales, date_dim WHERE ws_sold_date_sk = d_date_sk AND d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 GROUP BY ws_item_sk, d_date),
shop AS (SELECT ss_item_sk AS item, d_date AS day, sum(sum(ss_sales_price)) OVER (PARTITION BY ss_item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running
  FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 GROUP BY ss_item_sk, d_date)
SELECT * FROM (SELECT item, day, web_running, shop_running, max(web_running) OVER (PARTITION BY item ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS web_most,
    max(shop_running) OVER (PARTITION BY item ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS shop_most
  FROM (SELECT CASE WHEN web.item IS NOT NULL THEN web.item ELSE shop.item END AS item, CASE WHEN web.day IS NOT NULL THEN web.day ELSE shop.day END AS day,
      web.running AS web_running, shop.running AS shop_running FROM web FULL OUTER JOIN shop ON web.item = shop.item AND web.day = shop.day) x) y
WHERE web_most > shop_most ORDER BY item, day LIMIT 100
