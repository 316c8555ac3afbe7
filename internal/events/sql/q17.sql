SELECT id, ts, user_id, country, url, amount, latency
FROM events
WHERE ts >= '2025-11-03 09:00:00+00' AND ts < '{{after "2025-11-03 09:00" "1h"}}' AND status >= 500
ORDER BY id;
