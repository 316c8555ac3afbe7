-- Telephones and their makers, by users.
SELECT MobilePhone AS maker, MobilePhoneModel AS model, count(DISTINCT UserID) AS users
FROM hits WHERE MobilePhoneModel != '' GROUP BY MobilePhone, MobilePhoneModel ORDER BY users DESC, maker, model LIMIT 10
