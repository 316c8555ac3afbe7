-- Telephones of the most users.
SELECT MobilePhoneModel AS model, count(DISTINCT UserID) AS users
FROM hits WHERE MobilePhoneModel != '' GROUP BY MobilePhoneModel ORDER BY users DESC, model LIMIT 10
