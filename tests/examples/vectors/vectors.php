<?php
// Print the verdicts of an example on the vectors: php vectors.php verify.php FILE

declare(strict_types=1);

require $argv[1];

$vectors = json_decode(file_get_contents($argv[2]), true);
echo json_encode(array_map(fn ($v) => verify($v['secret'], $v['header'], $v['body'], $v['now']), $vectors)), PHP_EOL;
