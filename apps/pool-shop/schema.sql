-- The catalogue of the shop: 2000 items, the same in every database.
CREATE TABLE items (
    id integer PRIMARY KEY,
    name text NOT NULL,
    price_cents integer NOT NULL,
    stock integer NOT NULL
);
INSERT INTO items
SELECT id, 'Lantern & lamp no. ' || id, 100 + (id * 7919) % 9900, (id * 31) % 50
FROM generate_series(1, 2000) AS id;
ANALYZE items;
