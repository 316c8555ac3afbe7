package replica

// sendFailsSQL says whether the type of the pg_attribute row a has a send function
// that can fail, for want of one of a type within: an array, a composite type or a
// range of something without (array_send and the like ask only when they are called).
// The walsender would take the binary form and end the whole stream with an error.
// Base types, which nearly all are, cost one look-up.
//
// Such a table is refused, and not published without the column: of the columns of a publication's list (15 and later) the
// server refuses DROP COLUMN and ALTER TYPE, and UPDATE and DELETE once the replica identity is FULL. The format of the
// stream is that of all tables.
const sendFailsSQL = `EXISTS (SELECT FROM pg_catalog.pg_type o WHERE o.oid = a.atttypid AND o.typsend <> 0
	AND (o.typelem <> 0 OR o.typtype <> 'b')
	AND EXISTS (WITH RECURSIVE inner_types(oid) AS (
			SELECT o.oid
			UNION SELECT x.oid FROM inner_types i JOIN pg_catalog.pg_type p ON p.oid = i.oid
				CROSS JOIN LATERAL (SELECT p.typelem UNION ALL SELECT p.typbasetype
					UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE p.oid = r.rngtypid
					UNION ALL SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE p.typtype = 'm' AND p.oid = (pg_catalog.to_jsonb(r)->>'rngmultitypid')::oid
					UNION ALL SELECT c.atttypid FROM pg_catalog.pg_attribute c WHERE c.attrelid = p.typrelid AND c.attnum > 0 AND NOT c.attisdropped) x(oid)
				WHERE x.oid <> 0)
		SELECT FROM inner_types i JOIN pg_catalog.pg_type p ON p.oid = i.oid WHERE p.typsend = 0))`
