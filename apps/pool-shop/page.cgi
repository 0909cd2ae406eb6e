#!/usr/bin/php-cgi
<?php
// The page as a CGI program: PHP starts, compiles, connects, answers and ends for each request.
require __DIR__ . '/page.php';
