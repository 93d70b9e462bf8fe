// Inserts into a Derby database, each a transaction of its own: the time of the measured ones, as
// one line of JSON. The arguments are the directory of the database, the attributes of its
// encryption, how many inserts to warm up with and how many to measure.
//
// derby.system.durability=test is set: no insert waits for the disk, which would hide what
// encryption costs.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.Arrays;

public class DerbyInserts {
  public static void main(String[] arguments) throws SQLException {
    System.setProperty("derby.system.durability", "test");
    int warmUp = Integer.parseInt(arguments[2]);
    long[] times = new long[Integer.parseInt(arguments[3])];
    String url = "jdbc:derby:" + arguments[0] + ";create=true" + arguments[1];
    try (Connection connection = DriverManager.getConnection(url)) {
      connection.createStatement().execute("create table cards (id int primary key, number varchar(60), holder varchar(60))");
      try (PreparedStatement insert = connection.prepareStatement("insert into cards values (?, ?, ?)")) {
        for (int i = 0; i < warmUp; i++) insert(insert, i);
        long before = System.nanoTime();
        for (int i = 0; i < times.length; i++) {
          insert(insert, warmUp + i);
          long after = System.nanoTime();
          times[i] = after - before;
          before = after;
        }
      }
    }
    long total = Arrays.stream(times).sum();
    Arrays.sort(times);
    System.out.printf("{\"perSecond\":%d,\"medianNs\":%d,\"p99Ns\":%d}%n", times.length * 1_000_000_000L / total,
        times[times.length / 2], times[times.length * 99 / 100]);
  }

  private static void insert(PreparedStatement insert, int id) throws SQLException {
    insert.setInt(1, id);
    insert.setString(2, "card " + id * 7919L + " of the bank of this measurement");
    insert.setString(3, "holder number " + id);
    insert.executeUpdate();
  }
}
