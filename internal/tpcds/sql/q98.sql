-- Revenue of items in stores, and its share in the item's class.
SELECT i_item_id, i_item_desc, i_category, i_class, i_current_price, sum(ss_ext_sales_price) AS revenue,
  sum(ss_ext_sales_price) * 100 / nullif(sum(sum(ss_ext_sales_price)) OVER (PARTITION BY i_class), 0) AS share
FROM store_sales, item, date_dim
WHERE ss_item_sk = i_item_sk AND i_category IN ('[CATEGORY1]', '[CATEGORY2]', '[CATEGORY3]') AND ss_sold_date_sk = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 30
GROUP BY i_item_id, i_item_desc, i_category, i_class, i_current_price ORDER BY i_category, i_class, i_item_id, i_item_desc, share, i_current_price
