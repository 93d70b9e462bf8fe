// A JDBC client for tests: runs the statements of its standard input, one a line, on the URL of its
// argument, and prints rows and counts of rows. An error ends it, with all of its causes on
// standard error.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

public class SqlClient {
  public static void main(String[] arguments) throws Exception {
    try (Connection connection = DriverManager.getConnection(arguments[0]);
        Statement statement = connection.createStatement();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (line.isBlank()) continue;
        if (!statement.execute(line)) {
          System.out.println(statement.getUpdateCount());
          continue;
        }
        try (ResultSet rows = statement.getResultSet()) {
          while (rows.next()) {
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) row.add(rows.getString(i));
            System.out.println(String.join("|", row));
          }
        }
      }
    } catch (SQLException error) {
      for (Throwable each = error; each != null; each = each.getCause()) System.err.println(each);
      System.exit(1);
    }
  }
}
