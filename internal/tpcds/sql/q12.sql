-- Web revenue of items, and its share in the item's class.
SELECT i_item_id, i_item_desc, i_category, i_class, i_current_price, sum(ws_ext_sales_price) AS revenue,
  sum(ws_ext_sales_price) * 100 / sum(sum(ws_ext_sales_price)) OVER (PARTITION BY i_class) AS share
FROM web_sales, item, date_dim
WHERE ws_item_sk = i_item_sk AND i_category IN ('[CATEGORY1]', '[CATEGORY2]', '[CATEGORY3]') AND ws_sold_date_sk = d_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 30
GROUP BY i_item_id, i_item_desc, i_category, i_class, i_current_price
ORDER BY i_category, i_class, i_item_id, i_item_desc, share, i_current_price LIMIT 100
