-- The worst ratios of returns to sales, by quantity or by money, of each channel.
SELECT channel, item, return_ratio, return_rank, money_rank FROM (
  SELECT 'web' AS channel, item, return_ratio, return_rank, money_rank FROM (
    SELECT item, return_ratio, money_ratio, rank() OVER (ORDER BY return_ratio) AS return_rank, rank() OVER (ORDER BY money_ratio) AS money_rank FROM (
      SELECT ws_item_sk AS item, cast(sum(coalesce(wr_return_quantity, 0)) AS decimal(15,4)) / cast(sum(coalesce(ws_quantity, 0)) AS decimal(15,4)) AS return_ratio,
        cast(sum(coalesce(wr_return_amt, 0)) AS decimal(15,4)) / cast(sum(coalesce(ws_net_paid, 0)) AS decimal(15,4)) AS money_ratio
      FROM web_sales LEFT OUTER JOIN web_returns ON ws_order_number = wr_order_number AND ws_item_sk = wr_item_sk, date_dim
      WHERE wr_return_amt > 100 AND ws_net_profit > -5000 AND ws_net_paid > 0 AND ws_quantity > 0 AND ws_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 4
      GROUP BY ws_item_sk) a) b WHERE return_rank <= 10 OR money_rank <= 10
  UNION
  SELECT 'catalog', item, return_ratio, return_rank, money_rank FROM (
    SELECT item, return_ratio, money_ratio, rank() OVER (ORDER BY return_ratio) AS return_rank, rank() OVER (ORDER BY money_ratio) AS money_rank FROM (
      SELECT cs_item_sk AS item, cast(sum(coalesce(cr_return_quantity, 0)) AS decimal(15,4)) / cast(sum(coalesce(cs_quantity, 0)) AS decimal(15,4)) AS return_ratio,
        cast(sum(coalesce(cr_return_amount, 0)) AS decimal(15,4)) / cast(sum(coalesce(cs_net_paid, 0)) AS decimal(15,4)) AS money_ratio
      FROM catalog_sales LEFT OUTER JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk, date_dim
      WHERE cr_return_amount > 100 AND cs_net_profit > -5000 AND cs_net_paid > 0 AND cs_quantity > 0 AND cs_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 4
      GROUP BY cs_item_sk) a) b WHERE return_rank <= 10 OR money_rank <= 10
  UNION
  SELECT 'store', item, return_ratio, return_rank, money_rank FROM (
    SELECT item, return_ratio, money_ratio, rank() OVER (ORDER BY return_ratio) AS return_rank, rank() OVER (ORDER BY money_ratio) AS money_rank FROM (
      SELECT ss_item_sk AS item, cast(sum(coalesce(sr_return_quantity, 0)) AS decimal(15,4)) / cast(sum(coalesce(ss_quantity, 0)) AS decimal(15,4)) AS return_ratio,
        cast(sum(coalesce(sr_return_amt, 0)) AS decimal(15,4)) / cast(sum(coalesce(ss_net_paid, 0)) AS decimal(15,4)) AS money_ratio
      FROM store_sales LEFT OUTER JOIN store_returns ON ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk, date_dim
      WHERE sr_return_amt > 100 AND ss_net_profit > -5000 AND ss_net_paid > 0 AND ss_quantity > 0 AND ss_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 4
      GROUP BY ss_item_sk) a) b WHERE return_rank <= 10 OR money_rank <= 10) c
ORDER BY channel, return_rank, money_rank, item LIMIT 100
