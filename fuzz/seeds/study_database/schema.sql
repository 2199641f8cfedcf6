PRAGMA writable_schema=ON;
UPDATE sqlite_schema SET rootpage=2 WHERE name='run';
PRAGMA user_version=3;
