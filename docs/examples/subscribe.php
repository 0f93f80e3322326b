<?php
// Follow every event of a project. Needs PHP 8.0 or newer, and nothing else:
// BASE=http://127.0.0.1:8080 KEY=sk_... php subscribe.php FILE
// This runs on your server: the server key must never reach a customer.
//
// PHP has no websockets of its own, so this reads the feed, which waits up to 30 seconds for the next event: the same events in
// the same order. In FILE it keeps its place: started again, it goes on behind the last event that it has worked through.

declare(strict_types=1);

/** The answer to a GET, and its status; 0 if there was none. */
function get(string $path, array $params): array
{
    $options = [
        'header' => 'Authorization: Bearer ' . getenv('KEY'),
        'timeout' => 60,
        'ignore_errors' => true, // refusals have a body, too
    ];
    $url = getenv('BASE') . $path . '?' . http_build_query($params);
    $body = @file_get_contents($url, false, stream_context_create(['http' => $options]));
    if ($body === false) {
        return [0, null];
    }
    preg_match('/\d{3}/', $http_response_header[0], $status);
    return [(int) $status[0], json_decode($body, true)];
}

/** Do what your business needs. An event may come twice, if the program is stopped before its place is written. */
function work(array $event): void
{
    echo $event['type'], ' ', $event['sequence'] ?? 'null', ' ', $event['id'], PHP_EOL;
}

function keep(string $file, string $place): void
{
    file_put_contents("$file.new", $place);
    rename("$file.new", $file);
}

/** Where to begin without a place: behind everything that is there. */
function now(): string
{
    $place = '';
    do {
        [$status, $page] = get('/v3/s2s/conversations', ['sort' => 'updated', 'order' => 'desc', 'limit' => 1]);
        $status === 200 ? $place = (string) $page['asOf'] : sleep(1);
    } while ($status !== 200);
    return $place;
}

function follow(string $file): never
{
    $place = is_file($file) ? (string) file_get_contents($file) : now();
    keep($file, $place);
    echo 'subscribed ', $place, PHP_EOL;
    $pause = 1;
    while (true) {
        [$status, $page] = get('/v3/s2s/events', array_filter(['after' => $place, 'wait' => 30, 'limit' => 200]));
        if ($status === 404 || $status === 410) {
            fwrite(STDERR, "The place is no longer stored: fetch the conversations again (the guide's mirror).\n");
            exit(1);
        }
        if ($status !== 200) {
            sleep(random_int(1, $pause)); // away, restarted, or too much at once
            $pause = min(2 * $pause, 30);
            continue;
        }
        $pause = 1;
        foreach ($page['items'] as $event) {
            work($event);
            keep($file, $place = $event['id']);
        }
    }
}

follow($argv[1]);
