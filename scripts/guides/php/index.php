<?php
// A shop of four pages, each 20 ms: what scripts/test-guides puts behind Suimon.
header('Content-Type: text/plain');
if (strtok($_SERVER['REQUEST_URI'], '?') === '/whoami') {
    echo $_SERVER['REMOTE_ADDR'], ' ', empty($_SERVER['HTTPS']) ? 'http' : 'https', ' ', $_SERVER['HTTP_HOST'];
    exit;
}
session_start();
$_SESSION['seen'] = $_SERVER['REQUEST_URI'];
session_write_close();
usleep(20_000);
echo 'Welcome ', strlen(file_get_contents('php://input'));
