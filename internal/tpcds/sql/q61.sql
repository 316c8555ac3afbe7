-- The share of sales under promotions by mail, e-mail or television.
SELECT promoted, total, cast(promoted AS decimal(15,4)) / cast(total AS decimal(15,4)) * 100 AS share
FROM (SELECT sum(ss_ext_sales_price) AS promoted FROM store_sales, store, promotion, date_dim, customer, customer_address, item
    WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_promo_sk = p_promo_sk AND ss_customer_sk = c_customer_sk AND ca_address_sk = c_current_addr_sk AND ss_item_sk = i_item_sk
      AND ca_gmt_offset = [OFFSET] AND i_category = '[CATEGORY]' AND (p_channel_dmail = 'Y' OR p_channel_email = 'Y' OR p_channel_tv = 'Y') AND s_gmt_offset IN (-5, -6) AND d_year = [YEAR] AND d_moy = [LATE]) p,
  (SELECT sum(ss_ext_sales_price) AS total FROM store_sales, store, date_dim, customer, customer_address, item
    WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_customer_sk = c_customer_sk AND ca_address_sk = c_current_addr_sk AND ss_item_sk = i_item_sk
      AND ca_gmt_offset = [OFFSET] AND i_category = '[CATEGORY]' AND s_gmt_offset IN (-5, -6) AND d_year = [YEAR] AND d_moy = [LATE]) a
ORDER BY promoted, total LIMIT 100
