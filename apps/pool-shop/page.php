<?php
// The page of the shop in PHP, the same file for php-fpm, resident php-cgi, and CGI (through page.cgi).
//
// A resident worker connects to the database once (a persistent connection) and loads code and template once (the
// opcode cache keeps both). Under CGI both happen for every request.

// The template has no PHP in it: including it prints it, and the opcode cache holds it as one string.
ob_start();
include __DIR__ . '/template.html';
$template = ob_get_clean();

// The query, with so much waiting in it on average as if the database were busy elsewhere: now less, now more, as
// equal waits let all workers run in step.
const ITEMS = 'SELECT id, name, price_cents, stock FROM items, pg_sleep(-ln(1 - random()) * $2::float8 / 1000)
    WHERE id BETWEEN $1 AND $1 + 19 ORDER BY id';

// Returns the rows, or false. A connection that broke since the last request is made anew, once.
function items(int $first, string $wait_ms)
{
    $database = @pg_pconnect(getenv('SHOP_DATABASE'));
    if (!$database) {
        return false;
    }
    $asked = [$first, $wait_ms];
    $found = @pg_query_params($database, ITEMS, $asked);
    if (!$found && pg_connection_status($database) !== PGSQL_CONNECTION_OK && @pg_connection_reset($database)) {
        $found = @pg_query_params($database, ITEMS, $asked);
    }
    return $found ? pg_fetch_all($found) : false;
}

function table(array $items): string
{
    $rows = '';
    foreach ($items as $item) {
        $rows .= sprintf(
            "<tr><td>%d</td><td>%s</td><td>%.2f</td><td>%d</td></tr>\n",
            $item['id'],
            htmlspecialchars($item['name']),
            $item['price_cents'] / 100,
            $item['stock']
        );
    }
    return $rows;
}

$page = max(1, min(100, (int) ($_GET['page'] ?? 1)));
$items = items(20 * $page - 19, getenv('SHOP_WAIT_MS') ?: '0');
if ($items === false) {
    http_response_code(503);
    exit("The database does not answer.\n");
}
// The work of a page is a count and never a time: under contention it stays the same work.
$digest = '';
for ($times = max(1, (int) getenv('SHOP_WORK')); $times > 0; $times--) {
    $rows = table($items);
    $digest = hash('sha256', $digest . $rows);
}
echo strtr($template, ['{rows}' => $rows, '{digest}' => $digest]);
