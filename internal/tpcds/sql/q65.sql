-- Items that bring a store a tenth of its mean item or less.
SELECT s_store_name, i_item_desc, sc.revenue, i_current_price, i_wholesale_cost, i_brand
FROM store, item, (SELECT ss_store_sk AS shop, avg(revenue) AS mean FROM (SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue FROM store_sales, date_dim
    WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 GROUP BY ss_store_sk, ss_item_sk) sa GROUP BY ss_store_sk) sb,
  (SELECT ss_store_sk AS shop, ss_item_sk AS item, sum(ss_sales_price) AS revenue FROM store_sales, date_dim
    WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 GROUP BY ss_store_sk, ss_item_sk) sc
WHERE sb.shop = sc.shop AND sc.revenue <= 0.1 * sb.mean AND s_store_sk = sc.shop AND i_item_sk = sc.item
ORDER BY s_store_name, i_item_desc, sc.revenue, i_current_price, i_wholesale_cost, i_brand LIMIT 100
