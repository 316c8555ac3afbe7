-- Sales, returns and profit of stores, catalog pages and web sites, with sums.
WITH shops AS (SELECT s_store_id AS id, sum(price) AS sales, sum(profit) AS profit, sum(back) AS returns, sum(loss) AS loss
  FROM (SELECT ss_store_sk AS place, ss_sold_date_sk AS day, ss_ext_sales_price AS price, ss_net_profit AS profit,
      cast(0 AS decimal(7,2)) AS back, cast(0 AS decimal(7,2)) AS loss FROM store_sales
    UNION ALL SELECT sr_store_sk, sr_returned_date_sk, cast(0 AS decimal(7,2)), cast(0 AS decimal(7,2)), sr_return_amt, sr_net_loss FROM store_returns) x,
    date_dim, store
  WHERE day = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 20 AND place = s_store_sk GROUP BY s_store_id),
pages AS (SELECT cp_catalog_page_id AS id, sum(price) AS sales, sum(profit) AS profit, sum(back) AS returns, sum(loss) AS loss
  FROM (SELECT cs_catalog_page_sk AS place, cs_sold_date_sk AS day, cs_ext_sales_price AS price, cs_net_profit AS profit,
      cast(0 AS decimal(7,2)) AS back, cast(0 AS decimal(7,2)) AS loss FROM catalog_sales
    UNION ALL SELECT cr_catalog_page_sk, cr_returned_date_sk, cast(0 AS decimal(7,2)), cast(0 AS decimal(7,2)), cr_return_amount, cr_net_loss FROM catalog_returns) x,
    date_dim, catalog_page
  WHERE day = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 20 AND place = cp_catalog_page_sk GROUP BY cp_catalog_page_id),
sites AS (SELECT web_site_id AS id, sum(price) AS sales, sum(profit) AS profit, sum(back) AS returns, sum(loss) AS loss
  FROM (SELECT ws_web_site_sk AS place, ws_sold_date_sk AS day, ws_ext_sales_price AS price, ws_net_profit AS profit,
      cast(0 AS decimal(7,2)) AS back, cast(0 AS decimal(7,2)) AS loss FROM web_sales
    UNION ALL SELECT ws_web_site_sk, wr_returned_date_sk, cast(0 AS decimal(7,2)), cast(0 AS decimal(7,2)), wr_return_amt, wr_net_loss
      FROM web_returns LEFT JOIN web_sales ON wr_item_sk = ws_item_sk AND wr_order_number = ws_order_number) x,
    date_dim, web_site
  WHERE day = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 20 AND place = web_site_sk GROUP BY web_site_id)
SELECT channel, id, sum(sales) AS sales, sum(returns) AS returns, sum(profit) AS profit
FROM (SELECT 'store' AS channel, 'store' || id AS id, sales, returns, profit - loss AS profit FROM shops
  UNION ALL SELECT 'catalog', 'page' || id, sales, returns, profit - loss FROM pages
  UNION ALL SELECT 'web', 'site' || id, sales, returns, profit - loss FROM sites) y
GROUP BY ROLLUP (channel, id) ORDER BY channel, id LIMIT 100
