-- Deviation of a group from the average over its window, guarded against zero.
SELECT * FROM (SELECT brand, month, sum(s.price) total, avg(sum(s.price)) OVER (PARTITION BY brand) mean FROM items i, sales s, days d
	WHERE i.item_id = s.item_id AND s.day_id = d.day_id AND year = 2001 AND category IN ('Books', 'Home') GROUP BY brand, month) t
WHERE CASE WHEN mean > 0 THEN abs(total - mean) / mean ELSE NULL END > 0.1 ORDER BY mean, total, brand, month LIMIT 100;

-- Growth of two channels between two years, in a join of four groups.
WITH yearly AS (SELECT person_id, year, sum(paid) total, 's' channel FROM sales s, days d WHERE s.day_id = d.day_id GROUP BY person_id, year
	UNION ALL SELECT person_id, year, sum(paid), 'o' FROM orders o, days d WHERE o.day_id = d.day_id GROUP BY person_id, year)
SELECT s2.person_id, s2.total, o2.total FROM yearly s1, yearly s2, yearly o1, yearly o2
WHERE s2.person_id = s1.person_id AND s1.person_id = o1.person_id AND o1.person_id = o2.person_id AND s1.channel = 's' AND s2.channel = 's' AND o1.channel = 'o' AND o2.channel = 'o'
	AND s1.year = 2000 AND s2.year = 2001 AND o1.year = 2000 AND o2.year = 2001 AND s1.total > 0 AND o1.total > 0
	AND CASE WHEN o1.total > 0 THEN o2.total / o1.total ELSE NULL END > CASE WHEN s1.total > 0 THEN s2.total / s1.total ELSE NULL END
ORDER BY 1 LIMIT 100;

-- Share of a class in its category, a quotient ordered by.
SELECT code, class, sum(paid) revenue, sum(paid) * 100 / sum(sum(paid)) OVER (PARTITION BY class) share
FROM sales s, items i, days d WHERE s.item_id = i.item_id AND category IN ('Music', 'Shoes') AND s.day_id = d.day_id AND day BETWEEN date '2001-2-1' AND date '2001-2-1' + interval '90 days'
GROUP BY code, class ORDER BY class, share, code;

-- ROLLUP with ranks within the parent.
SELECT sum(profit) / sum(paid) margin, category, class, grouping(category) + grouping(class) level,
	rank() OVER (PARTITION BY grouping(category) + grouping(class), CASE WHEN grouping(class) = 0 THEN category END ORDER BY sum(profit) / sum(paid)) place
FROM sales s, days d, items i, shops h WHERE d.year = 2001 AND d.day_id = s.day_id AND i.item_id = s.item_id AND h.shop_id = s.shop_id AND state IN ('TN', 'GA')
GROUP BY ROLLUP (category, class) ORDER BY level DESC, CASE WHEN grouping(category) + grouping(class) = 0 THEN category END, place, margin;

-- Three channels below one another, their names made of text.
SELECT channel, id, sum(amount) amount, sum(back) back, sum(profit) profit FROM (
	SELECT 'shop' channel, 'shop' || s.shop_id id, paid amount, coalesce(amount, 0) back, profit - coalesce(amount, 0) profit FROM sales s LEFT JOIN returns r ON s.ticket = r.ticket AND s.item_id = r.item_id
	UNION ALL SELECT 'order', 'house' || warehouse_id, paid, 0, profit FROM orders) x GROUP BY ROLLUP (channel, id) ORDER BY channel, id, amount;

-- Items above the average of their category, by a correlated sub-select.
SELECT p.state, count(*) cnt FROM places p, people c, sales s, days d, items i
WHERE p.place_id = c.place_id AND c.person_id = s.person_id AND s.day_id = d.day_id AND s.item_id = i.item_id AND d.month_no = (SELECT DISTINCT month_no FROM days WHERE year = 2001 AND month = 1)
	AND i.price > 1.2 * (SELECT avg(j.price) FROM items j WHERE j.category = i.category) GROUP BY p.state HAVING count(*) >= 3 ORDER BY cnt, p.state;

-- Ranks of return ratios from both ends.
SELECT item_id, return_ratio, amount_ratio, rank() OVER (ORDER BY return_ratio) return_rank, rank() OVER (ORDER BY amount_ratio) amount_rank FROM (
	SELECT s.item_id, cast(sum(coalesce(r.quantity, 0)) AS decimal(15,4)) / cast(sum(coalesce(s.quantity, 0)) AS decimal(15,4)) return_ratio,
		cast(sum(coalesce(r.amount, 0)) AS decimal(15,4)) / cast(sum(coalesce(s.paid, 0)) AS decimal(15,4)) amount_ratio
	FROM sales s LEFT JOIN returns r ON s.ticket = r.ticket AND s.item_id = r.item_id, days d WHERE s.day_id = d.day_id AND s.paid > 0 AND year = 2001 GROUP BY s.item_id) x
ORDER BY 4, 5, 1;

-- Best and worst performers side by side.
SELECT a.rnk, i1.code best, i2.code worst FROM
	(SELECT item_id, rank() OVER (ORDER BY mean) rnk FROM (SELECT item_id, avg(profit) mean FROM sales WHERE shop_id = 4 GROUP BY item_id
		HAVING avg(profit) > 0.9 * (SELECT avg(profit) FROM sales WHERE shop_id = 4)) v1) a,
	(SELECT item_id, rank() OVER (ORDER BY mean DESC) rnk FROM (SELECT item_id, avg(profit) mean FROM sales WHERE shop_id = 4 GROUP BY item_id) v2) b, items i1, items i2
WHERE a.rnk = b.rnk AND a.rnk < 11 AND i1.item_id = a.item_id AND i2.item_id = b.item_id ORDER BY a.rnk, best, worst;

-- Zip codes of two lists, joined by a part of them.
SELECT h.name, sum(profit) FROM sales s, days d, shops h, (SELECT zip FROM (SELECT substring(zip, 1, 5) zip FROM places WHERE substring(zip, 1, 3) IN ('310', '312', '314')
	INTERSECT SELECT zip FROM (SELECT substring(zip, 1, 5) zip, count(*) cnt FROM places, people WHERE places.place_id = people.place_id GROUP BY zip HAVING count(*) > 1) a1) a2) v
WHERE s.shop_id = h.shop_id AND s.day_id = d.day_id AND month = 3 AND year = 2001 AND substring(h.zip, 1, 3) = substring(v.zip, 1, 3) GROUP BY h.name ORDER BY h.name;

-- Orders from several warehouses that came back never.
WITH several AS (SELECT o1.order_no, o1.warehouse_id w1, o2.warehouse_id w2 FROM orders o1, orders o2 WHERE o1.order_no = o2.order_no AND o1.warehouse_id <> o2.warehouse_id)
SELECT count(DISTINCT o.order_no), sum(paid), sum(profit) FROM orders o, days d WHERE day BETWEEN '2001-2-01' AND cast('2001-2-01' AS date) + interval '60 days' AND o.ship_day_id = d.day_id
	AND o.order_no IN (SELECT order_no FROM several) AND NOT EXISTS (SELECT * FROM returns r WHERE r.ticket = o.order_no AND r.quantity > 20);

-- Makers of items of some looks, counted by a sub-select whose arms share their key.
SELECT DISTINCT code FROM items i1 WHERE manager BETWEEN 3 AND 43 AND (SELECT count(*) FROM items i
	WHERE (i.maker = i1.maker AND (color = 'powder' AND price > 50 OR color = 'khaki' AND price < 90)) OR (i.maker = i1.maker AND (color = 'deep' AND class = 'class 4'))) > 2 ORDER BY code LIMIT 100;

-- Cumulative sums of two channels, whichever has a row.
SELECT * FROM (SELECT item_id, day_id, shop_sum, order_sum, max(shop_sum) OVER (PARTITION BY item_id ORDER BY day_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) shop_most,
	max(order_sum) OVER (PARTITION BY item_id ORDER BY day_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) order_most FROM (
	SELECT CASE WHEN o.item_id IS NOT NULL THEN o.item_id ELSE s.item_id END item_id, CASE WHEN o.day_id IS NOT NULL THEN o.day_id ELSE s.day_id END day_id, s.total shop_sum, o.total order_sum
	FROM (SELECT item_id, s.day_id, sum(sum(paid)) OVER (PARTITION BY item_id ORDER BY s.day_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) total FROM sales s, days d WHERE s.day_id = d.day_id AND month_no BETWEEN 13 AND 14 GROUP BY item_id, s.day_id) s
	FULL OUTER JOIN (SELECT item_id, o.day_id, sum(sum(paid)) OVER (PARTITION BY item_id ORDER BY o.day_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) total FROM orders o, days d WHERE o.day_id = d.day_id AND month_no BETWEEN 13 AND 14 GROUP BY item_id, o.day_id) o
	ON o.item_id = s.item_id AND o.day_id = s.day_id) x) y WHERE order_most > shop_most ORDER BY item_id, day_id LIMIT 100;

-- Morning against evening: a quotient of two counts.
SELECT cast(amc AS decimal(15,4)) / cast(pmc AS decimal(15,4)) ratio FROM (SELECT count(*) amc FROM sales WHERE quantity BETWEEN 10 AND 30 AND shop_id = 3) a, (SELECT count(*) pmc FROM sales WHERE quantity BETWEEN 40 AND 90) p ORDER BY ratio;

-- Weeks of one year against those of the next, rounded.
WITH weeks AS (SELECT week_no, sum(CASE WHEN weekday = 'Sunday' THEN paid END) sun, sum(CASE WHEN weekday = 'Monday' THEN paid END) mon FROM (SELECT paid, day_id FROM sales UNION ALL SELECT paid, day_id FROM orders) x, days d WHERE d.day_id = x.day_id GROUP BY week_no)
SELECT y.week_no, round(y.sun / z.sun, 2), round(y.mon / z.mon, 2) FROM (SELECT w.* FROM weeks w, days d WHERE d.week_no = w.week_no AND year = 2000 AND weekday = 'Friday') y,
	(SELECT w.* FROM weeks w, days d WHERE d.week_no = w.week_no AND year = 2001 AND weekday = 'Friday') z WHERE y.week_no = z.week_no - 52 ORDER BY 1;

-- Squares' mean against the mean's square: variation of what is on stock.
SELECT a.warehouse_id, a.item_id, a.mean, a.cov, b.mean, b.cov FROM
	(SELECT warehouse_id, item_id, month, mean, CASE mean WHEN 0 THEN NULL ELSE stdev / mean END cov FROM (SELECT warehouse_id, item_id, month, stddev_samp(on_hand) stdev, avg(on_hand) mean FROM stock s, days d WHERE s.day_id = d.day_id GROUP BY 1, 2, 3) f WHERE CASE mean WHEN 0 THEN 0 ELSE stdev / mean END > 0.5) a,
	(SELECT warehouse_id, item_id, month, mean, CASE mean WHEN 0 THEN NULL ELSE stdev / mean END cov FROM (SELECT warehouse_id, item_id, month, stddev_samp(on_hand) stdev, avg(on_hand) mean FROM stock s, days d WHERE s.day_id = d.day_id GROUP BY 1, 2, 3) f WHERE CASE mean WHEN 0 THEN 0 ELSE stdev / mean END > 0.5) b
WHERE a.item_id = b.item_id AND a.warehouse_id = b.warehouse_id AND a.month = 1 AND b.month = 2 ORDER BY 1, 2, 3, 4, 5, 6;

-- People who bought in one channel or another, names put together.
SELECT upper(coalesce(last_name, '') || ', ' || coalesce(first_name, '')) customer, count(*) FROM people c, places p WHERE c.place_id = p.place_id AND p.state IN ('TN', 'OH') AND lower(city) LIKE 'city 1%'
	AND EXISTS (SELECT 1 FROM sales s, days d WHERE s.person_id = c.person_id AND s.day_id = d.day_id AND year = 2001)
	AND (EXISTS (SELECT 1 FROM orders o, days d WHERE o.person_id = c.person_id AND o.day_id = d.day_id AND year = 2001 AND month < 4) OR EXISTS (SELECT 1 FROM returns r WHERE r.person_id = c.person_id AND r.amount > 1000))
GROUP BY 1 ORDER BY 1;

-- Ratios of what was sold in a year by unit of area.
SELECT name, area, sum(jan) jan, sum(jan / area) jan_per_area, sum(feb / area) feb_per_area FROM (
	SELECT name, area, sum(CASE WHEN month = 1 THEN paid * quantity ELSE 0 END) jan, sum(CASE WHEN month = 2 THEN paid * quantity ELSE 0 END) feb FROM sales s, shops h, days d
	WHERE s.shop_id = h.shop_id AND s.day_id = d.day_id AND year = 2001 GROUP BY name, area) x GROUP BY name, area ORDER BY name, area;

-- A year against the one before, where it fell.
WITH total AS (SELECT year, brand, class, sum(cnt) cnt, sum(amount) amount FROM (
	SELECT year, brand, class, s.quantity - coalesce(r.quantity, 0) cnt, s.paid - coalesce(r.amount, 0.0) amount FROM sales s JOIN items i ON i.item_id = s.item_id JOIN days d ON d.day_id = s.day_id LEFT JOIN returns r ON s.ticket = r.ticket AND s.item_id = r.item_id WHERE category = 'Books'
	UNION SELECT year, brand, class, o.quantity, o.paid FROM orders o JOIN items i ON i.item_id = o.item_id JOIN days d ON d.day_id = o.day_id WHERE category = 'Books') x GROUP BY year, brand, class)
SELECT p.year, c.year, c.brand, c.class, p.cnt, c.cnt, c.cnt - p.cnt, c.amount - p.amount FROM total c, total p WHERE c.brand = p.brand AND c.class = p.class AND c.year = 2001 AND p.year = 2000
	AND cast(c.cnt AS decimal(17,2)) / cast(p.cnt AS decimal(17,2)) < 0.9 ORDER BY 7, 8, 3, 4 LIMIT 100;

-- Buckets chosen by counts.
SELECT CASE WHEN (SELECT count(*) FROM sales WHERE quantity BETWEEN 1 AND 20) > 5000 THEN (SELECT avg(paid) FROM sales WHERE quantity BETWEEN 1 AND 20) ELSE (SELECT avg(profit) FROM sales WHERE quantity BETWEEN 1 AND 20) END b1,
	CASE WHEN (SELECT count(*) FROM sales WHERE quantity BETWEEN 21 AND 40) > 50000 THEN (SELECT avg(paid) FROM sales WHERE quantity BETWEEN 21 AND 40) ELSE (SELECT avg(profit) FROM sales WHERE quantity BETWEEN 21 AND 40) END b2
FROM shops WHERE shop_id = 1;

-- Revenue within a tenth of its mean over three sources.
WITH a AS (SELECT code, sum(paid) rev FROM sales s, items i WHERE s.item_id = i.item_id GROUP BY code), b AS (SELECT code, sum(paid) rev FROM orders o, items i WHERE o.item_id = i.item_id GROUP BY code)
SELECT a.code, a.rev, a.rev / ((a.rev + b.rev) / 2) * 100 dev, b.rev, (a.rev + b.rev) / 2 mean FROM a, b WHERE a.code = b.code AND a.rev BETWEEN 0.8 * b.rev AND 2.2 * b.rev ORDER BY a.code, a.rev LIMIT 100;
