-- Sales, returns and profit of shops, call centers and web pages in a month, with sums.
WITH ss AS (SELECT s_store_sk AS shop, sum(ss_ext_sales_price) AS sales, sum(ss_net_profit) AS profit FROM store_sales, date_dim, store
  WHERE ss_sold_date_sk = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 30 AND ss_store_sk = s_store_sk GROUP BY s_store_sk),
sr AS (SELECT s_store_sk AS shop, sum(sr_return_amt) AS returns, sum(sr_net_loss) AS loss FROM store_returns, date_dim, store
  WHERE sr_returned_date_sk = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 30 AND sr_store_sk = s_store_sk GROUP BY s_store_sk),
cs AS (SELECT cs_call_center_sk AS center, sum(cs_ext_sales_price) AS sales, sum(cs_net_profit) AS profit FROM catalog_sales, date_dim
  WHERE cs_sold_date_sk = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 30 GROUP BY cs_call_center_sk),
cr AS (SELECT sum(cr_return_amount) AS returns, sum(cr_net_loss) AS loss FROM catalog_returns, date_dim
  WHERE cr_returned_date_sk = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 30),
ws AS (SELECT wp_web_page_sk AS page, sum(ws_ext_sales_price) AS sales, sum(ws_net_profit) AS profit FROM web_sales, date_dim, web_page
  WHERE ws_sold_date_sk = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 30 AND ws_web_page_sk = wp_web_page_sk GROUP BY wp_web_page_sk),
wr AS (SELECT wp_web_page_sk AS page, sum(wr_return_amt) AS returns, sum(wr_net_loss) AS loss FROM web_returns, date_dim, web_page
  WHERE wr_returned_date_sk = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 30 AND wr_web_page_sk = wp_web_page_sk GROUP BY wp_web_page_sk)
SELECT channel, id, sum(sales) AS sales, sum(returns) AS returns, sum(profit) AS profit FROM (
  SELECT 'store' AS channel, ss.shop AS id, sales, coalesce(returns, 0) AS returns, profit - coalesce(loss, 0) AS profit FROM ss LEFT JOIN sr ON ss.shop = sr.shop
  UNION ALL SELECT 'catalog', center, sales, returns, profit - loss FROM cs, cr
  UNION ALL SELECT 'web', ws.page, sales, coalesce(returns, 0), profit - coalesce(loss, 0) FROM ws LEFT JOIN wr ON ws.page = wr.page) x
GROUP BY ROLLUP (channel, id) ORDER BY channel, id, sales LIMIT 100
