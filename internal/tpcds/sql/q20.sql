-- Catalog revenue of items, and its share in the item's class.
SELECT i_item_id, i_category, i_class, i_current_price, sum(cs_ext_sales_price) AS revenue,
  sum(cs_ext_sales_price) * 100 / sum(sum(cs_ext_sales_price)) OVER (PARTITION BY i_class) AS share
FROM catalog_sales, item, date_dim
WHERE cs_item_sk = i_item_sk AND i_category IN ('[CATEGORY1]', '[CATEGORY2]') AND cs_sold_date_sk = d_date_sk AND d_date BETWEEN cast('[DATE]' AS date) AND cast('[DATE]' AS date) + interval '30 days'
GROUP BY i_item_id, i_category, i_class, i_current_price ORDER BY i_category, i_class, i_item_id, share, i_current_price LIMIT 100
