-- Losses of call centers by returns of some people.
SELECT cc_call_center_id, cc_name, cc_manager, sum(cr_net_loss) AS loss FROM call_center, catalog_returns, date_dim, customer, customer_address, customer_demographics, household_demographics
WHERE cr_call_center_sk = cc_call_center_sk AND cr_returned_date_sk = d_date_sk AND cr_returning_customer_sk = c_customer_sk AND cd_demo_sk = c_current_cdemo_sk AND hd_demo_sk = c_current_hdemo_sk
  AND ca_address_sk = c_current_addr_sk AND d_year = [YEAR] AND ((cd_marital_status = 'M' AND cd_education_status IN ('[EDUCATION1]', '[EDUCATION2]', '[EDUCATION3]')) OR (cd_marital_status = 'W' AND cd_education_status = '[EDUCATION4]'))
  AND hd_buy_potential LIKE '%0%' AND ca_gmt_offset IN (-6, -7)
GROUP BY cc_call_center_id, cc_name, cc_manager, cd_marital_status, cd_education_status ORDER BY sum(cr_net_loss) DESC, cc_call_center_id, cc_name, cc_manager
