-- List prices in six ranges of quantities: their mean, number and number of different ones.
SELECT * FROM
  (SELECT avg(ss_list_price) AS mean1, count(ss_list_price) AS number1, count(DISTINCT ss_list_price) AS different1 FROM store_sales
    WHERE ss_quantity BETWEEN 0 AND 5 AND (ss_list_price BETWEEN [PRICE1] AND [PRICE1] + 10 OR ss_coupon_amt BETWEEN 100 AND 1100 OR ss_wholesale_cost BETWEEN [QUANTITY1] AND [QUANTITY1] + 20)) b1,
  (SELECT avg(ss_list_price) AS mean2, count(ss_list_price) AS number2, count(DISTINCT ss_list_price) AS different2 FROM store_sales
    WHERE ss_quantity BETWEEN 6 AND 10 AND (ss_list_price BETWEEN [PRICE2] AND [PRICE2] + 10 OR ss_coupon_amt BETWEEN 300 AND 1300 OR ss_wholesale_cost BETWEEN [QUANTITY2] AND [QUANTITY2] + 20)) b2,
  (SELECT avg(ss_list_price) AS mean3, count(ss_list_price) AS number3, count(DISTINCT ss_list_price) AS different3 FROM store_sales
    WHERE ss_quantity BETWEEN 11 AND 15 AND (ss_list_price BETWEEN [PRICE3] AND [PRICE3] + 10 OR ss_coupon_amt BETWEEN 500 AND 1500 OR ss_wholesale_cost BETWEEN [QUANTITY3] AND [QUANTITY3] + 20)) b3,
  (SELECT avg(ss_list_price) AS mean4, count(ss_list_price) AS number4, count(DISTINCT ss_list_price) AS different4 FROM store_sales
    WHERE ss_quantity BETWEEN 16 AND 20 AND (ss_list_price BETWEEN [PRICE4] AND [PRICE4] + 10 OR ss_coupon_amt BETWEEN 700 AND 1700 OR ss_wholesale_cost BETWEEN [QUANTITY4] AND [QUANTITY4] + 20)) b4,
  (SELECT avg(ss_list_price) AS mean5, count(ss_list_price) AS number5, count(DISTINCT ss_list_price) AS different5 FROM store_sales
    WHERE ss_quantity BETWEEN 21 AND 25 AND (ss_list_price BETWEEN [PRICE5] AND [PRICE5] + 10 OR ss_coupon_amt BETWEEN 900 AND 1900 OR ss_wholesale_cost BETWEEN [QUANTITY5] AND [QUANTITY5] + 20)) b5,
  (SELECT avg(ss_list_price) AS mean6, count(ss_list_price) AS number6, count(DISTINCT ss_list_price) AS different6 FROM store_sales
    WHERE ss_quantity BETWEEN 26 AND 30 AND (ss_list_price BETWEEN [PRICE6] AND [PRICE6] + 10 OR ss_coupon_amt BETWEEN 1100 AND 2100 OR ss_wholesale_cost BETWEEN [QUANTITY6] AND [QUANTITY6] + 20)) b6
LIMIT 100
