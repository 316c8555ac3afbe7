-- Items of some makers and prices that were on stock and sold in stores.
SELECT i_item_id, i_item_desc, i_current_price FROM item, inventory, date_dim, store_sales
WHERE i_current_price BETWEEN [PRICE] AND [PRICE] + 30 AND inv_item_sk = i_item_sk AND d_date_sk = inv_date_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 60
  AND i_manufact_id IN ([MAKER1], [MAKER2], [MAKER3], [MAKER4], [MAKER5], [MAKER6], [MAKER7], [MAKER8], [MAKER9]) AND inv_quantity_on_hand BETWEEN 100 AND 500 AND ss_item_sk = i_item_sk
GROUP BY i_item_id, i_item_desc, i_current_price ORDER BY i_item_id, i_item_desc, i_current_price LIMIT 100
