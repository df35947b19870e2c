//! What the functions of this family give.

use super::super::testing::{Case, call_in};
use crate::context::{Context, Settings, Space};

#[rustfmt::skip]
pub(in super::super) const CASES: &[Case] = &[
    ("ST_AREA", r#"{"type":"Point","coordinates":[1,2]}"#, "0"),
    ("ST_AREA", r#"{"type":"LineString","coordinates":[[1,2],[3,4]]}"#, "0"),
    ("ST_AREA", r#"{"type":"MultiPolygon","coordinates":[]}"#, "0"),
    ("ST_AREA", "[1,2]", "undefined"),
    ("ST_AREA", r#"{"type":"Point","coordinates":[1,92]}"#, "undefined"),
    ("ST_AREA", "null", "undefined"),
    ("ST_DISTANCE", r#"{"type":"Point","coordinates":[1,2]},{"type":"Point","coordinates":[1,2]}"#, "0"),
    ("ST_DISTANCE", r#"{"type":"Point","coordinates":[180,2]},{"type":"Point","coordinates":[-180,2]}"#, "0"),
    ("ST_DISTANCE", r#"{"type":"Point","coordinates":[5,5]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "0"),
    ("ST_DISTANCE", r#"{"type":"LineString","coordinates":[[-1,5],[11,5]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "0"),
    ("ST_DISTANCE", r#"{"type":"Point","coordinates":[1,2]},{}"#, "undefined"),
    ("ST_DISTANCE", r#"{"type":"Point","coordinates":[1,2]},{"type":"MultiPolygon","coordinates":[]}"#, "undefined"),
    ("ST_DISTANCE", r#""x",{"type":"Point","coordinates":[1,2]}"#, "undefined"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[-122.13693695285855,47.64996065621003],[-122.1351662656516,47.64627863318731],[-122.13488295569863,47.646326350048696],[-122.1366182291613,47.650016321952904],[-122.13693695285855,47.64996065621003]]]},{"type":"Polygon","coordinates":[[[-122.14034847687708,47.6494835188378],[-122.14014779899375,47.64625477474044],[-122.13256925774829,47.646207057813655],[-122.13254564858545,47.64941990019193],[-122.14034847687708,47.6494835188378]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[-122.14034847687708,47.6494835188378],[-122.14014779899375,47.64625477474044],[-122.13256925774829,47.646207057813655],[-122.13254564858545,47.64941990019193],[-122.14034847687708,47.6494835188378]]]},{"type":"Polygon","coordinates":[[[-122.13693695285855,47.64996065621003],[-122.1351662656516,47.64627863318731],[-122.13488295569863,47.646326350048696],[-122.1366182291613,47.650016321952904],[-122.13693695285855,47.64996065621003]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]},{"type":"Polygon","coordinates":[[[2.2,2.2],[2.8,2.2],[2.8,2.8],[2.2,2.8],[2.2,2.2]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[2.2,2.2],[2.8,2.2],[2.8,2.8],[2.2,2.8],[2.2,2.2]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[3,2],[3,3],[2,3],[2,2]]]},{"type":"Point","coordinates":[2.5,2.5]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[2.5,2.5]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[3,2],[3,3],[2,3],[2,2]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]},{"type":"Point","coordinates":[1,1]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[1,1]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"Point","coordinates":[10,10]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[10,10]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"Point","coordinates":[5,0]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[5,0]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"Point","coordinates":[11,5]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[11,5]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]},{"type":"Point","coordinates":[11,5]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[11,5]},{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]},{"type":"Point","coordinates":[5,5]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[5,5]},{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]},{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]},{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"LineString","coordinates":[[-5,5],[15,5]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"LineString","coordinates":[[-5,5],[15,5]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"LineString","coordinates":[[-5,15],[15,15]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"LineString","coordinates":[[-5,15],[15,15]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"LineString","coordinates":[[0,0],[10,10]]},{"type":"LineString","coordinates":[[0,10],[10,0]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"LineString","coordinates":[[0,10],[10,0]]},{"type":"LineString","coordinates":[[0,0],[10,10]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"LineString","coordinates":[[0,0],[10,0]]},{"type":"LineString","coordinates":[[0,1],[10,1]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"LineString","coordinates":[[0,1],[10,1]]},{"type":"LineString","coordinates":[[0,0],[10,0]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"LineString","coordinates":[[0,0],[0,5]]},{"type":"Point","coordinates":[0,2]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[0,2]},{"type":"LineString","coordinates":[[0,0],[0,5]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[1,1]},{"type":"Point","coordinates":[1,1]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[1,1]},{"type":"Point","coordinates":[1,1]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[1,1]},{"type":"Point","coordinates":[1,2]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[1,2]},{"type":"Point","coordinates":[1,1]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]},{"type":"Point","coordinates":[180,0]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[180,0]},{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]},{"type":"Point","coordinates":[-175,5]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[-175,5]},{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]},{"type":"Point","coordinates":[0,0]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[0,0]},{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,80]]]},{"type":"Point","coordinates":[50,85]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[50,85]},{"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,80]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,80]]]},{"type":"Point","coordinates":[0,90]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[0,90]},{"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,80]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,80]]]},{"type":"Point","coordinates":[50,-85]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[50,-85]},{"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,80]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,-80],[-120,-80],[120,-80],[0,-80]]]},{"type":"Point","coordinates":[50,-85]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[50,-85]},{"type":"Polygon","coordinates":[[[0,-80],[-120,-80],[120,-80],[0,-80]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,-80],[-120,-80],[120,-80],[0,-80]]]},{"type":"Point","coordinates":[50,85]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[50,85]},{"type":"Polygon","coordinates":[[[0,-80],[-120,-80],[120,-80],[0,-80]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,1],[0,0]]],[[[5,5],[6,5],[6,6],[5,6],[5,5]]]]},{"type":"Point","coordinates":[5.5,5.5]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[5.5,5.5]},{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,1],[0,0]]],[[[5,5],[6,5],[6,6],[5,6],[5,5]]]]}"#, "true"),
    ("ST_INTERSECTS", r#"{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,1],[0,0]]],[[[5,5],[6,5],[6,6],[5,6],[5,5]]]]},{"type":"Point","coordinates":[3,3]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Point","coordinates":[3,3]},{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,1],[0,0]]],[[[5,5],[6,5],[6,6],[5,6],[5,5]]]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"LineString","coordinates":[[0,0],[90,0]]},{"type":"LineString","coordinates":[[180,10],[180,-10]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"LineString","coordinates":[[180,10],[180,-10]]},{"type":"LineString","coordinates":[[0,0],[90,0]]}"#, "false"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},null"#, "undefined"),
    ("ST_INTERSECTS", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},undefined"#, "undefined"),
    ("ST_ISVALID", r#"{"type":"Point","coordinates":[-84.38876194345323,33.75682784306348]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"Point","coordinates":[1,2,3]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"LineString","coordinates":[[0,0],[1,1]]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,80]]]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,1],[0,0]]],[[[1,1],[2,1],[2,2],[1,2],[1,1]]]]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[-122.13236581015025,47.64606476313813],[-122.13221982500913,47.633757091363975],[-122.11840598103835,47.641749416109235],[-122.12061400629656,47.64589264786028],[-122.13236581015025,47.64606476313813]]]}"#, "true"),
    ("ST_ISVALID", r#"{"type":"Point","coordinates":[133.7,-184.3]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Point","coordinates":[190,0]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Point","coordinates":[1]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Point","coordinates":["1",2]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Point"}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Circle","coordinates":[1,2]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"GeometryCollection","geometries":[]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"LineString","coordinates":[[0,0]]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[0,0]]]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[0,0],[2,2],[2,0],[0,2],[0,0]]]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[0,0],[2,0],[2,2],[0,2],[0,0]],[[1,1],[3,1],[3,3],[1,3],[1,1]]]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[[[0,0],[0,0],[0,0],[0,0]]]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"Polygon","coordinates":[1]}"#, "false"),
    ("ST_ISVALID", r#"{"type":"LineString","coordinates":[1,2]}"#, "false"),
    ("ST_ISVALID", "[]", "false"),
    ("ST_ISVALID", "null", "false"),
    ("ST_ISVALID", r#""Point""#, "false"),
    ("ST_ISVALID", "1", "false"),
    ("ST_ISVALID", "undefined", "undefined"),
    ("ST_ISVALIDDETAILED", r#"{"type":"Point","coordinates":[-84.38,33.75]}"#, r#"{"valid":true}"#),
    ("ST_ISVALIDDETAILED", r#"{"type":"Point","coordinates":[133.75,-184.38]}"#, r#"{"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."}"#),
    ("ST_ISVALIDDETAILED", r#"{"type":"Point","coordinates":[190,0]}"#, r#"{"valid":false,"reason":"Longitude values must be between -180 and 180 degrees."}"#),
    ("ST_ISVALIDDETAILED", "null", r#"{"valid":false,"reason":"The value is not a GeoJSON object with a type."}"#),
    ("ST_ISVALIDDETAILED", r#"{"type":"LineString","coordinates":[[0,0]]}"#, r#"{"valid":false,"reason":"A LineString must have two or more positions."}"#),
    ("ST_ISVALIDDETAILED", r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]}"#, r#"{"valid":false,"reason":"The first and the last position of a ring must be the same."}"#),
    ("ST_ISVALIDDETAILED", r#"{"type":"Polygon","coordinates":[[[0,0],[2,2],[2,0],[0,2],[0,0]]]}"#, r#"{"valid":false,"reason":"The boundary of a polygon must not cross or touch itself."}"#),
    ("ST_ISVALIDDETAILED", "undefined", "undefined"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[-122.12824857332558,47.6395516675712]},{"type":"Polygon","coordinates":[[[-122.13236581015025,47.64606476313813],[-122.13221982500913,47.633757091363975],[-122.11840598103835,47.641749416109235],[-122.12061400629656,47.64589264786028],[-122.13236581015025,47.64606476313813]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[5,5]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[11,5]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[0,0]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[5,0]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[0,0],[5,0],[5,5],[0,5],[0,0]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[5,5],[15,5],[15,8],[5,8],[5,5]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[1,1],[4,1],[4,4],[1,4],[1,1]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[4,4],[5,4],[5,5],[4,5],[4,4]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[20,20],[21,20],[21,21],[20,21],[20,20]]]},{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]},{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"LineString","coordinates":[[1,1],[9,9]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"LineString","coordinates":[[1,1],[19,9]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"LineString","coordinates":[[0,0],[0,10]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"LineString","coordinates":[[1,2.5],[9,2.5]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[1,1]},{"type":"Point","coordinates":[1,1]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[0,2]},{"type":"LineString","coordinates":[[0,0],[0,5]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"LineString","coordinates":[[0,1],[0,2]]},{"type":"LineString","coordinates":[[0,0],[0,5]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"LineString","coordinates":[[0,1],[0,6]]},{"type":"LineString","coordinates":[[0,0],[0,5]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]},{"type":"Point","coordinates":[1,1]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[180,1]},{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[10,89]},{"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,80]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]},{"type":"MultiPolygon","coordinates":[[[[20,20],[21,20],[21,21],[20,21],[20,20]]],[[[0,0],[10,0],[10,10],[0,10],[0,0]]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"MultiPolygon","coordinates":[[[[1,1],[2,1],[2,2],[1,2],[1,1]]],[[[20,20],[21,20],[21,21],[20,21],[20,20]]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[5,5],[0,10],[0,0]]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "true"),
    ("ST_WITHIN", r#"{"type":"LineString","coordinates":[[1,9.5],[9,9.5]]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[5,5],[0,10],[0,0]]]}"#, "false"),
    ("ST_WITHIN", r#"{"type":"Point","coordinates":[1,1]},1"#, "undefined"),
    ("ST_WITHIN", r#"{},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, "undefined"),
];

fn measured(space: Space, name: &str, args: &str) -> f64 {
    let settings = Settings { space, ..Settings::default() };
    let result = call_in(&Context::with_settings(0, 0, &settings), name, args);
    result.unwrap().as_f64().unwrap()
}

/// Against the service's documented results and, for the rest, GeographicLib's own tools.
#[test]
fn measures_on_the_globe() {
    let check = |name, args: &str, expected: f64, error: f64| {
        let actual = measured(Space::Geography, name, args);
        assert!((actual - expected).abs() <= error, "{name}({args}): is {actual}, should be {expected}");
    };
    check(
        "ST_DISTANCE",
        r#"{"type":"Point","coordinates":[-122.12826822304672,47.63980239335718]},{"type":"Point","coordinates":[-122.11758113953535,47.66901087006131]}"#,
        3345.269817267368,
        0.001,
    );
    check(
        "ST_AREA",
        r#"{"type":"Polygon","coordinates":[[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7],[31.8,-5]]]}"#,
        735_970_283.052_261_4,
        100.0,
    );
    check(
        "ST_DISTANCE",
        r#"{"type":"Point","coordinates":[0,0]},{"type":"Point","coordinates":[0,1]}"#,
        110_574.388_557_8,
        1e-3,
    );
    check(
        "ST_DISTANCE",
        r#"{"type":"Point","coordinates":[179,0]},{"type":"Point","coordinates":[-179,0]}"#,
        222_638.981_586_5,
        1e-3,
    );
    check(
        "ST_DISTANCE",
        r#"{"type":"Point","coordinates":[5,11]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#,
        measured(
            Space::Geography,
            "ST_DISTANCE",
            r#"{"type":"Point","coordinates":[5,11]},{"type":"LineString","coordinates":[[0,10],[10,10]]}"#,
        ),
        1e-6,
    );
    check(
        "ST_DISTANCE",
        r#"{"type":"Point","coordinates":[5,-1]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#,
        110_574.388_557_8,
        1e-3,
    );
    check(
        "ST_DISTANCE",
        r#"{"type":"LineString","coordinates":[[20,-5],[20,5]]},{"type":"LineString","coordinates":[[0,0],[19,0]]}"#,
        111_319.490_793_3,
        1e-3,
    );
    check(
        "ST_DISTANCE",
        r#"{"type":"Point","coordinates":[2.5,2.5]},{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#,
        measured(
            Space::Geography,
            "ST_DISTANCE",
            r#"{"type":"Point","coordinates":[2.5,2.5]},{"type":"LineString","coordinates":[[0,0],[10,0],[10,10],[0,10],[0,0]]}"#,
        ),
        1e-6,
    );
    // The earth without a square: clockwise is everything else.
    let square = measured(
        Space::Geography,
        "ST_AREA",
        r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#,
    );
    check(
        "ST_AREA",
        r#"{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#,
        510_065_621_724_088.5 - square,
        1.0,
    );
    let hole = measured(
        Space::Geography,
        "ST_AREA",
        r#"{"type":"Polygon","coordinates":[[[2,2],[3,2],[3,3],[2,3],[2,2]]]}"#,
    );
    check(
        "ST_AREA",
        r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#,
        square - hole,
        1.0,
    );
}

#[test]
fn measures_in_the_plane() {
    let check = |name, args: &str, expected: f64| {
        assert_eq!(measured(Space::Geometry, name, args), expected, "{name}({args})")
    };
    check("ST_AREA", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#, 100.0);
    check("ST_AREA", r#"{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#, 100.0);
    check(
        "ST_AREA",
        r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,3],[3,3],[3,2],[2,2]]]}"#,
        99.0,
    );
    check(
        "ST_DISTANCE",
        r#"{"type":"Point","coordinates":[1000,0]},{"type":"Point","coordinates":[1003,4]}"#,
        5.0,
    );
    check(
        "ST_DISTANCE",
        r#"{"type":"Point","coordinates":[5,13]},{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}"#,
        3.0,
    );
    check(
        "ST_DISTANCE",
        r#"{"type":"Point","coordinates":[5,5]},{"type":"Polygon","coordinates":[[[0,0],[0,10],[10,10],[10,0],[0,0]]]}"#,
        0.0,
    );
    let settings = Settings { space: Space::Geometry, ..Settings::default() };
    let context = Context::with_settings(0, 0, &settings);
    let is_valid = call_in(&context, "ST_ISVALID", r#"{"type":"Point","coordinates":[1000,-1000]}"#);
    assert!(is_valid.unwrap().is_true());
}
