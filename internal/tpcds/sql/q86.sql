-- Web sales of classes and categories, ranked within their parent.
SELECT sum(ws_net_paid) AS paid, i_category, i_class, grouping(i_category) + grouping(i_class) AS level,
  rank() OVER (PARTITION BY grouping(i_category) + grouping(i_class), CASE WHEN grouping(i_class) = 0 THEN i_category END ORDER BY sum(ws_net_paid) DESC) AS place
FROM web_sales, date_dim d1, item WHERE d1.d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 AND d1.d_date_sk = ws_sold_date_sk AND i_item_sk = ws_item_sk
GROUP BY ROLLUP (i_category, i_class) ORDER BY level DESC, CASE WHEN grouping(i_category) + grouping(i_class) = 0 THEN i_category END, place, i_category, i_class LIMIT 100
