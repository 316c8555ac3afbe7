-- Statements with parameters of no declared type: what PostgreSQL infers must be what the plan assumes.
SELECT count(*) FROM orders WHERE qty = $1
SELECT count(*) FROM orders WHERE small < $1 AND big > $2
SELECT count(*) FROM orders WHERE $1 = qty
SELECT count(*) FROM orders WHERE amount > $1 AND rate = $2
SELECT count(*) FROM orders WHERE status = $1 AND kind = $2 AND flag = $3
SELECT count(*) FROM orders WHERE status IN ($1, $2) AND kind IN ($3, $4) AND flag IN ($5, $6)
SELECT count(*) FROM orders WHERE status IN ($1)
SELECT count(*) FROM orders WHERE status IN ('a', $1)
SELECT count(*) FROM orders WHERE qty IN (1, $1)
SELECT count(*) FROM orders WHERE small IN (1, $1)
SELECT count(*) FROM orders WHERE small IN ($1, $2)
SELECT count(*) FROM orders WHERE amount IN ($1, $2)
SELECT count(*) FROM orders WHERE qty IN (1.5, $1)
SELECT count(*) FROM orders WHERE status LIKE $1 AND flag LIKE $2 AND kind ILIKE $3
SELECT count(*) FROM orders WHERE day BETWEEN $1 AND $2
SELECT count(*) FROM orders WHERE at >= $1 AND seen < $2 AND clock = $3
SELECT count(*) FROM orders WHERE paid = $1 OR $2
SELECT count(*) FROM orders WHERE weight > $1 AND score < $2
SELECT qty + $1 FROM orders
SELECT small + $1, big * $2, day - $3 FROM orders
SELECT amount * $1 FROM orders
SELECT day + $1 FROM orders
SELECT $1 FROM orders
SELECT $1::int, $2::text, $3::date FROM orders
SELECT coalesce(qty, $1) FROM orders
SELECT coalesce(status, $1) FROM orders
SELECT coalesce($1, kind) FROM orders
SELECT CASE WHEN qty > $1 THEN $2 ELSE status END FROM orders
SELECT CASE WHEN paid THEN $1 ELSE big END FROM orders
SELECT nullif(qty, $1) FROM orders
SELECT nullif(status, $1) FROM orders
SELECT count(*) FROM orders WHERE qty = $1 AND customer_id = $1
SELECT count(*) FROM orders WHERE qty = $1 AND big = $1
SELECT count(*) FROM orders WHERE status = $1 AND kind = $1
SELECT count(*) FROM orders WHERE qty IS DISTINCT FROM $1
SELECT count(*) FROM orders WHERE qty + 1 = $1 AND abs(small) = $2
SELECT count(*) FROM orders GROUP BY qty HAVING count(*) > $1 AND sum(qty) > $2 AND sum(amount) > $3 AND avg(qty) > $4
SELECT id FROM orders WHERE qty > 5 ORDER BY id LIMIT $1 OFFSET $2
SELECT count(*) FROM orders WHERE date_trunc('month', at) = $1
SELECT count(*) FROM orders WHERE extract(year FROM day) = $1
SELECT count(*) FROM orders WHERE $1
SELECT count(*) FROM orders WHERE $1 = $2
SELECT count(*) FROM orders WHERE ($1 IS NULL OR status = $1)
SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.name = $1 AND c.credit < $2
SELECT sum(CASE WHEN kind = $1 THEN qty ELSE $2 END) FROM orders
SELECT kind, count(*) FROM orders WHERE day >= $1 AND day < $2 GROUP BY kind ORDER BY 2 DESC LIMIT $3
SELECT count(*) FROM orders WHERE data @> $1
SELECT data ->> $1 FROM orders WHERE data ? $2
SELECT count(*) FROM orders WHERE data -> 'a' = $1
