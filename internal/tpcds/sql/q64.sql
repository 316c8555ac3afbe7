-- Items bought and brought back, by catalog worth ordering, in two years that follow each other.
WITH worth AS (SELECT cs_item_sk AS item, sum(cs_ext_list_price) AS sale, sum(cr_refunded_cash + cr_reversed_charge + cr_store_credit) AS refund
  FROM catalog_sales, catalog_returns WHERE cs_item_sk = cr_item_sk AND cs_order_number = cr_order_number
  GROUP BY cs_item_sk HAVING sum(cs_ext_list_price) > 2 * sum(cr_refunded_cash + cr_reversed_charge + cr_store_credit)),
crossed AS (SELECT i_product_name AS product, i_item_sk AS item, s_store_name AS shop, s_zip AS shop_zip, a1.ca_city AS bought_city, a1.ca_zip AS bought_zip, a2.ca_city AS home_city, a2.ca_zip AS home_zip,
    d1.d_year AS sold, d2.d_year AS first_sold, d3.d_year AS first_shipped, count(*) AS number, sum(ss_wholesale_cost) AS cost, sum(ss_list_price) AS list, sum(ss_coupon_amt) AS coupon
  FROM store_sales, store_returns, worth, date_dim d1, date_dim d2, date_dim d3, store, customer, customer_demographics cd1, customer_demographics cd2, promotion,
    household_demographics hd1, household_demographics hd2, customer_address a1, customer_address a2, income_band ib1, income_band ib2, item
  WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d1.d_date_sk AND ss_customer_sk = c_customer_sk AND ss_cdemo_sk = cd1.cd_demo_sk AND ss_hdemo_sk = hd1.hd_demo_sk
    AND ss_addr_sk = a1.ca_address_sk AND ss_item_sk = i_item_sk AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number AND ss_item_sk = worth.item
    AND c_current_cdemo_sk = cd2.cd_demo_sk AND c_current_hdemo_sk = hd2.hd_demo_sk AND c_current_addr_sk = a2.ca_address_sk AND c_first_sales_date_sk = d2.d_date_sk
    AND c_first_shipto_date_sk = d3.d_date_sk AND ss_promo_sk = p_promo_sk AND hd1.hd_income_band_sk = ib1.ib_income_band_sk AND hd2.hd_income_band_sk = ib2.ib_income_band_sk
    AND cd1.cd_marital_status <> cd2.cd_marital_status AND i_current_price BETWEEN 1 AND [PRICE] + 40
  GROUP BY i_product_name, i_item_sk, s_store_name, s_zip, a1.ca_city, a1.ca_zip, a2.ca_city, a2.ca_zip, d1.d_year, d2.d_year, d3.d_year)
SELECT c1.product, c1.shop, c1.bought_city, c1.home_city, c1.sold, c1.number, c1.cost, c1.list, c1.coupon, c2.sold AS then_sold, c2.number AS then_number, c2.cost AS then_cost, c2.coupon AS then_coupon
FROM crossed c1, crossed c2 WHERE c1.item = c2.item AND c1.sold = [YEAR] AND c2.sold = [YEAR] + 1 AND c2.number <= c1.number AND c1.shop = c2.shop
ORDER BY c1.product, c1.shop, c2.number, c1.cost, c2.cost, c1.bought_city, c1.home_city, c1.list, c1.coupon, c2.coupon
