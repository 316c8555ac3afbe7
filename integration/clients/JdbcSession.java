import java.nio.file.*;
import java.sql.*;
import java.util.*;

/** An analytic session with pgJDBC: java -cp postgresql.jar JdbcSession.java PORT DB SESSION.SQL */
public class JdbcSession {
    static void show(ResultSet rs) throws SQLException {
        ResultSetMetaData m = rs.getMetaData();
        StringBuilder b = new StringBuilder();
        for (int i = 1; i <= m.getColumnCount(); i++)
            b.append(m.getColumnName(i)).append('/').append(m.getColumnTypeName(i)).append('/').append(m.getPrecision(i)).append('/')
                .append(m.getScale(i)).append('/').append(m.getTableName(i)).append(' ');
        System.out.println(b);
        int n = 0;
        while (rs.next()) {
            b.setLength(0);
            for (int i = 1; i <= m.getColumnCount(); i++) b.append(rs.getString(i)).append('|');
            System.out.println(b);
            n++;
        }
        System.out.println(n + " rows");
        rs.close();
    }

    static void session(Connection c, List<String> queries, int fetchSize) throws SQLException {
        for (String q : queries) {
            try (Statement s = c.createStatement()) {
                s.setFetchSize(fetchSize);
                show(s.executeQuery(q));
            }
        }
        // Named and binary from the fifth execution on.
        for (String q : queries.subList(0, 6)) {
            try (PreparedStatement s = c.prepareStatement(q)) {
                s.setFetchSize(fetchSize);
                for (int i = 0; i < 8; i++) show(s.executeQuery());
            }
        }
        try (PreparedStatement s = c.prepareStatement("SELECT lo_shipmode, count(*), sum(lo_revenue), avg(lo_quantity) FROM lineorder"
                + " WHERE lo_orderdate BETWEEN ? AND ? AND lo_discount = ? GROUP BY 1 ORDER BY 1")) {
            s.setFetchSize(fetchSize);
            for (int i = 0; i < 9; i++) {
                s.setInt(1, 19920101 + i * 10000);
                s.setInt(2, 19921231 + i * 10000);
                s.setInt(3, i);
                show(s.executeQuery());
            }
        }
        try (PreparedStatement s = c.prepareStatement("SELECT k, count(*), sum(num), max(d), max(ts) FROM typed WHERE num > ? AND d < ? AND ts < ? AND t <> ? GROUP BY k ORDER BY k")) {
            for (int i = 0; i < 7; i++) {
                s.setBigDecimal(1, new java.math.BigDecimal("-1000000.25"));
                s.setDate(2, java.sql.Date.valueOf("2030-06-01"));
                s.setTimestamp(3, Timestamp.valueOf("2030-01-02 03:04:05.678"));
                s.setString(4, "text " + i);
                show(s.executeQuery());
            }
        }
        // Metabase: a row limit without a transaction.
        try (Statement s = c.createStatement()) {
            s.setMaxRows(5);
            show(s.executeQuery(queries.get(1)));
        }
        for (String bad : new String[] {"SELECT nonsense FROM lineorder", "SELECT sum(lo_revenue / (lo_discount - lo_discount)) FROM lineorder"}) {
            try (Statement s = c.createStatement()) {
                show(s.executeQuery(bad));
            } catch (SQLException e) {
                System.out.println(e.getSQLState() + " " + e.getMessage());
                if (!c.getAutoCommit()) c.rollback();
            }
        }
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TEMP TABLE IF NOT EXISTS mine (a int)");
            System.out.println(s.executeUpdate("INSERT INTO mine VALUES (1), (2)"));
            show(s.executeQuery("SELECT count(*) FROM lineorder, mine WHERE a = lo_linenumber"));
            System.out.println(s.execute("SELECT count(*) FROM dates; SELECT count(*) FROM part"));
            s.execute("DROP TABLE mine");
        }
    }

    public static void main(String[] a) throws Exception {
        List<String> queries = Files.readAllLines(Path.of(a[2]));
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        String url = "jdbc:postgresql://127.0.0.1:" + a[0] + "/" + a[1] + "?user=postgres&sslmode=disable&options=-c%20pgaccel.mode=force";
        for (String mode : new String[] {"extended", "simple"}) {
            for (boolean auto : new boolean[] {true, false}) {
                for (int fetchSize : new int[] {0, 7}) {
                    try (Connection c = DriverManager.getConnection(url + "&preferQueryMode=" + mode)) {
                        c.setAutoCommit(auto);
                        session(c, queries, fetchSize);
                        if (!auto) c.commit();
                    }
                }
            }
        }
        try (Connection c = DriverManager.getConnection(url)) {
            c.setReadOnly(true);
            c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            c.setAutoCommit(false);
            for (String q : queries) try (Statement s = c.createStatement()) { show(s.executeQuery(q)); }
            c.rollback();
            DatabaseMetaData m = c.getMetaData();
            show(m.getTables(null, "public", null, new String[] {"TABLE"}));
            show(m.getColumns(null, "public", "lineorder", null));
            show(m.getPrimaryKeys(null, "public", "lineorder"));
        }
    }
}
