<?php
// The page, which takes 55 MB while it is made and gives them back.

const TAKEN_BYTES = 55 << 20;

$taken = str_repeat('x', TAKEN_BYTES);

include __DIR__ . '/page.php';
