<?php
// The page, in a worker that keeps 55 MB from its first request on: memory of the C library, which PHP neither counts
// nor gives back. Needs the option ffi.enable=1.

const KEPT_BYTES = 55 << 20;
// PHP forgets its variables after each request; the environment of the process stays.
const MARK = 'SHOP_KEEPS';

$library = FFI::cdef('char *getenv(const char *name); int setenv(const char *name, const char *value, int replaces);
    void *malloc(size_t size); void *memset(void *at, int byte, size_t size);');
if ($library->getenv(MARK) === null) {
    $library->memset($library->malloc(KEPT_BYTES), 1, KEPT_BYTES);
    $library->setenv(MARK, 'yes', 1);
}

include __DIR__ . '/page.php';
