-- Averages of items bought by people of a kind under promotions outside of the usual channels.
SELECT i_item_id, avg(ss_quantity) AS quantity, avg(ss_list_price) AS list_price, avg(ss_coupon_amt) AS coupon, avg(ss_sales_price) AS price
FROM store_sales, customer_demographics, date_dim, item, promotion
WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_cdemo_sk = cd_demo_sk AND ss_promo_sk = p_promo_sk
  AND cd_gender = '[GENDER]' AND cd_marital_status = '[MARITAL]' AND cd_education_status = '[EDUCATION]'
  AND (p_channel_email = 'N' OR p_channel_event = 'N') AND d_year = [YEAR]
GROUP BY i_item_id ORDER BY i_item_id LIMIT 100
