-- Best and worst products of a store side by side.
SELECT up.place, i1.i_product_name AS best, i2.i_product_name AS worst
FROM (SELECT * FROM (SELECT item_sk, rank() OVER (ORDER BY profit) AS place FROM (SELECT ss_item_sk AS item_sk, avg(ss_net_profit) AS profit FROM store_sales s WHERE ss_store_sk = 4
      GROUP BY ss_item_sk HAVING avg(ss_net_profit) > 0.9 * (SELECT avg(ss_net_profit) AS profit FROM store_sales WHERE ss_store_sk = 4 AND ss_addr_sk IS NULL GROUP BY ss_store_sk)) v1) v11
    WHERE place < 11) up,
  (SELECT * FROM (SELECT item_sk, rank() OVER (ORDER BY profit DESC) AS place FROM (SELECT ss_item_sk AS item_sk, avg(ss_net_profit) AS profit FROM store_sales s WHERE ss_store_sk = 4
      GROUP BY ss_item_sk HAVING avg(ss_net_profit) > 0.9 * (SELECT avg(ss_net_profit) AS profit FROM store_sales WHERE ss_store_sk = 4 AND ss_addr_sk IS NULL GROUP BY ss_store_sk)) v2) v21
    WHERE place < 11) down, item i1, item i2
WHERE up.place = down.place AND i1.i_item_sk = up.item_sk AND i2.i_item_sk = down.item_sk ORDER BY up.place, best, worst LIMIT 100
