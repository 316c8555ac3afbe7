-- Months of managers that are off their mean.
SELECT * FROM (SELECT i_manager_id, sum(ss_sales_price) AS sales, avg(sum(ss_sales_price)) OVER (PARTITION BY i_manager_id) AS mean
  FROM item, store_sales, date_dim, store
  WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11
    AND ((i_category IN ('[CATEGORY1]', '[CATEGORY2]', '[CATEGORY3]') AND i_units IN ('[UNIT1]', '[UNIT2]', '[UNIT3]', '[UNIT4]', '[UNIT5]', '[UNIT6]'))
      OR (i_category IN ('[CATEGORY4]', '[CATEGORY5]', '[CATEGORY6]') AND i_units IN ('[UNIT7]', '[UNIT8]', '[UNIT9]', '[UNIT10]', '[UNIT11]', '[UNIT12]')))
  GROUP BY i_manager_id, d_moy) x
WHERE CASE WHEN mean > 0 THEN abs(sales - mean) / mean END > 0.1 ORDER BY i_manager_id, mean, sales LIMIT 100
