SELECT device, browser, status, grouping(device, browser, status), count(*)
FROM events
GROUP BY CUBE (device, browser, status);
