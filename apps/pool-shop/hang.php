<?php
// Never answers: a worker that hangs.

while (true) {
    sleep(3600);
}
