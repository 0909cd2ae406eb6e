<?php
// The page, in a worker that keeps a quarter of a megabyte more for each that it answers: memory of the C library, which PHP
// neither counts nor gives back. Needs the option ffi.enable=1.

const LEAKED_BYTES = 256 << 10;

$library = FFI::cdef('void *malloc(size_t size); void *memset(void *at, int byte, size_t size);');
$library->memset($library->malloc(LEAKED_BYTES), 1, LEAKED_BYTES);

include __DIR__ . '/page.php';
