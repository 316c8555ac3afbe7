-- What people who live near a store and were born abroad brought back of a color.
WITH back AS (SELECT c_last_name, c_first_name, s_store_name, ca_state, s_state, i_color, i_current_price, i_manager_id, i_units, i_size, sum(ss_net_paid) AS paid
  FROM store_sales, store_returns, store, item, customer, customer_address
  WHERE ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk AND ss_customer_sk = c_customer_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk
    AND c_current_addr_sk = ca_address_sk AND c_birth_country <> upper(ca_country) AND s_state = ca_state AND s_market_id BETWEEN 2 AND 9
  GROUP BY c_last_name, c_first_name, s_store_name, ca_state, s_state, i_color, i_current_price, i_manager_id, i_units, i_size)
SELECT c_last_name, c_first_name, s_store_name, sum(paid) AS paid FROM back WHERE i_color NOT IN ('[COLOR1]', '[COLOR2]', '[COLOR3]')
GROUP BY c_last_name, c_first_name, s_store_name HAVING sum(paid) > (SELECT 0.05 * avg(paid) FROM back)
ORDER BY c_last_name, c_first_name, s_store_name
