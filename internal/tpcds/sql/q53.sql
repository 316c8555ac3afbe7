-- Quarters of makers that are off their mean.
SELECT * FROM (SELECT i_manufact_id, sum(ss_sales_price) AS sales, avg(sum(ss_sales_price)) OVER (PARTITION BY i_manufact_id) AS mean
  FROM item, store_sales, date_dim, store
  WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_month_seq IN ([MSEQ], [MSEQ] + 1, [MSEQ] + 2, [MSEQ] + 3, [MSEQ] + 4, [MSEQ] + 5, [MSEQ] + 6, [MSEQ] + 7, [MSEQ] + 8, [MSEQ] + 9, [MSEQ] + 10, [MSEQ] + 11)
    AND ((i_category IN ('[CATEGORY1]', '[CATEGORY2]', '[CATEGORY3]') AND i_size IN ('[SIZE1]', '[SIZE2]', '[SIZE3]') AND i_manager_id < 60)
      OR (i_category IN ('[CATEGORY4]', '[CATEGORY5]', '[CATEGORY6]') AND i_size IN ('[SIZE4]', '[SIZE5]', '[SIZE6]') AND i_manager_id > 30))
  GROUP BY i_manufact_id, d_qoy) x
WHERE CASE WHEN mean > 0 THEN abs(sales - mean) / mean END > 0.1 ORDER BY mean, sales, i_manufact_id LIMIT 100
