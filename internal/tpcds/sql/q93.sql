-- What customers really paid where something came back for a reason.
SELECT customer, sum(paid) AS paid FROM (SELECT ss_customer_sk AS customer, CASE WHEN sr_return_quantity IS NOT NULL THEN (ss_quantity - sr_return_quantity) * ss_sales_price ELSE ss_quantity * ss_sales_price END AS paid
  FROM store_sales LEFT OUTER JOIN store_returns ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number, reason
  WHERE sr_reason_sk = r_reason_sk AND r_reason_desc = (SELECT r_reason_desc FROM reason WHERE r_reason_sk = [REASON])) x
GROUP BY customer ORDER BY paid, customer LIMIT 100
