-- Profit of the states and counties of the five best states, ranked within their parent.
SELECT sum(ss_net_profit) AS profit, s_state, s_county, grouping(s_state) + grouping(s_county) AS level,
  rank() OVER (PARTITION BY grouping(s_state) + grouping(s_county), CASE WHEN grouping(s_county) = 0 THEN s_state END ORDER BY sum(ss_net_profit) DESC) AS place
FROM store_sales, date_dim d1, store
WHERE d1.d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 AND d1.d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk
  AND s_state IN (SELECT state FROM (SELECT s_state AS state, rank() OVER (PARTITION BY s_state ORDER BY sum(ss_net_profit) DESC) AS r FROM store_sales, store, date_dim
    WHERE d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 AND d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk GROUP BY s_state) x WHERE r <= 5)
GROUP BY ROLLUP (s_state, s_county) ORDER BY level DESC, CASE WHEN grouping(s_state) + grouping(s_county) = 0 THEN s_state END, place, s_state, s_county LIMIT 100
